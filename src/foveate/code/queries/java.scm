; Definitions
(class_declaration name: (_) @name body: (_) @body) @def.class
(interface_declaration name: (_) @name body: (_) @body) @def.interface
(annotation_type_declaration name: (_) @name body: (_) @body) @def.interface
(enum_declaration name: (_) @name body: (_) @body) @def.enum
(record_declaration name: (_) @name body: (_) @body) @def.record
(method_declaration name: (_) @name) @def.method
(method_declaration body: (_) @body)
(constructor_declaration name: (_) @name body: (_) @body) @def.constructor
(compact_constructor_declaration name: (_) @name body: (_) @body) @def.constructor
(field_declaration (modifiers "static" "final") declarator: (variable_declarator name: (_) @name)) @def.CONSTANT
(interface_body (constant_declaration declarator: (variable_declarator name: (_) @name)) @def.constant)

; References
(method_invocation name: (_) @ref)
(method_reference (_) (identifier) @ref)
(type_identifier) @ref
(marker_annotation name: (identifier) @ref)
(annotation name: (identifier) @ref)

(import_declaration (_) @import)
