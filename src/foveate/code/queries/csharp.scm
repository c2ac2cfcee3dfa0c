; Definitions
(class_declaration name: (_) @name body: (_) @body) @def.class
(struct_declaration name: (_) @name body: (_) @body) @def.struct
(interface_declaration name: (_) @name body: (_) @body) @def.interface
(enum_declaration name: (_) @name body: (_) @body) @def.enum
(record_declaration name: (_) @name) @def.record
(record_declaration body: (_) @body)
(delegate_declaration name: (_) @name) @def.type
(method_declaration name: (_) @name) @def.method
(method_declaration body: (_) @body)
(constructor_declaration name: (_) @name body: (_) @body) @def.constructor
(local_function_statement name: (_) @name body: (_) @body) @def.function
(property_declaration name: (_) @name) @def.property
(property_declaration accessors: (_) @body)
(field_declaration (modifier "const") (variable_declaration (variable_declarator name: (_) @name))) @def.constant
(field_declaration (modifier "static") (modifier "readonly") (variable_declaration (variable_declarator name: (_) @name))) @def.constant

; References
(invocation_expression function: [(identifier) @ref (member_access_expression name: (identifier) @ref) (generic_name (identifier) @ref)
  (member_access_expression name: (generic_name (identifier) @ref)) (conditional_access_expression (member_binding_expression name: (identifier) @ref))])
(object_creation_expression type: [(identifier) @ref (generic_name (identifier) @ref) (qualified_name name: (identifier) @ref)])
(base_list [(identifier) @ref (generic_name (identifier) @ref) (qualified_name name: (identifier) @ref)])
(type_argument_list (identifier) @ref)
(parameter type: [(identifier) @ref (generic_name (identifier) @ref) (nullable_type (identifier) @ref)])
(variable_declaration type: [(identifier) @ref (generic_name (identifier) @ref)])
(method_declaration returns: [(identifier) @ref (generic_name (identifier) @ref)])
(property_declaration type: [(identifier) @ref (generic_name (identifier) @ref)])
(attribute name: (identifier) @ref)

(using_directive [(identifier) (qualified_name)] @import)
