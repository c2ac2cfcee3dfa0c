; Definitions
(class_definition name: (_) @name) @def.class
(class_definition body: (_) @body)
(object_definition name: (_) @name) @def.object
(object_definition body: (_) @body)
(trait_definition name: (_) @name) @def.trait
(trait_definition body: (_) @body)
(enum_definition name: (_) @name body: (_) @body) @def.enum
(function_definition name: (_) @name body: (_) @body) @def.function
(function_declaration name: (_) @name) @def.function
(type_definition name: (_) @name) @def.type
(template_body (val_definition pattern: (identifier) @name) @def.CONSTANT)
(compilation_unit (val_definition pattern: (identifier) @name) @def.constant)

; References
(call_expression function: [(identifier) @ref (field_expression field: (identifier) @ref) (generic_function function: (identifier) @ref)])
(instance_expression [(type_identifier) @ref (generic_type (type_identifier) @ref)])
(type_identifier) @ref

(import_declaration) @import
