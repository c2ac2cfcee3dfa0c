; Definitions
(function_definition declarator: (function_declarator declarator: (_) @name) body: (_) @body) @def.function
(function_definition declarator: (pointer_declarator declarator: (function_declarator declarator: (_) @name)) body: (_) @body) @def.function
(function_definition declarator: (pointer_declarator declarator: (pointer_declarator declarator: (function_declarator declarator: (_) @name)))
  body: (_) @body) @def.function
(type_definition type: [(struct_specifier body: (_) @body) (union_specifier body: (_) @body)] declarator: (type_identifier) @name) @def.struct
(type_definition type: (enum_specifier body: (_) @body) declarator: (type_identifier) @name) @def.enum
(type_definition declarator: (type_identifier) @name) @def.type
(type_definition declarator: (function_declarator declarator: (parenthesized_declarator (pointer_declarator (type_identifier) @name)))) @def.type
(struct_specifier name: (_) @name body: (_) @body) @def.struct
(union_specifier name: (_) @name body: (_) @body) @def.union
(enum_specifier name: (_) @name body: (_) @body) @def.enum
(preproc_def name: (_) @name value: (_)) @def.constant
(preproc_function_def name: (_) @name) @def.macro
; A prototype is how a header defines a function
(declaration declarator: (function_declarator declarator: (identifier) @name)) @def.function
(declaration declarator: (pointer_declarator declarator: (function_declarator declarator: (identifier) @name))) @def.function

; References
(call_expression function: [(identifier) @ref (field_expression field: (_) @ref)])
(parameter_declaration type: [(type_identifier) @ref (struct_specifier name: (_) @ref !body)])
(field_declaration type: [(type_identifier) @ref (struct_specifier name: (_) @ref !body)])
(declaration type: [(type_identifier) @ref (struct_specifier name: (_) @ref !body)])
(function_definition type: [(type_identifier) @ref (struct_specifier name: (_) @ref !body)])
(cast_expression type: (type_descriptor type: [(type_identifier) @ref (struct_specifier name: (_) @ref)]))
(sizeof_expression type: (type_descriptor type: [(type_identifier) @ref (struct_specifier name: (_) @ref)]))

(preproc_include path: (_) @import)
