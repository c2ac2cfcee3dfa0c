; Definitions
(class_declaration "class" name: (type_identifier) @name body: (_) @body) @def.class
(class_declaration "actor" name: (type_identifier) @name body: (_) @body) @def.class
(class_declaration "struct" name: (type_identifier) @name body: (_) @body) @def.struct
(class_declaration "enum" name: (type_identifier) @name body: (_) @body) @def.enum
(class_declaration "extension" name: (user_type (type_identifier) @name)) @scope
(protocol_declaration name: (_) @name body: (_) @body) @def.protocol
(function_declaration name: (_) @name body: (_) @body) @def.function
(protocol_function_declaration name: (_) @name) @def.method
(init_declaration "init" @name body: (_) @body) @def.constructor
(typealias_declaration name: (_) @name) @def.type
(source_file (property_declaration name: (pattern bound_identifier: (_) @name)) @def.constant)
(class_body (property_declaration (modifiers (property_modifier)) name: (pattern bound_identifier: (_) @name)) @def.constant)

; References
(call_expression . [(simple_identifier) @ref (navigation_expression suffix: (navigation_suffix suffix: (simple_identifier) @ref))])
(user_type (type_identifier) @ref)
(attribute (user_type (type_identifier) @ref))

(import_declaration (identifier) @import)
