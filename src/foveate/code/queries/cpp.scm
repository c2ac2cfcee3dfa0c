; Definitions
(template_declaration (_)) @outer
(class_specifier name: (_) @name body: (_) @body) @def.class
(struct_specifier name: (_) @name body: (_) @body) @def.struct
(union_specifier name: (_) @name body: (_) @body) @def.union
(enum_specifier name: (_) @name body: (_) @body) @def.enum
(type_definition declarator: (type_identifier) @name) @def.type
(alias_declaration name: (_) @name) @def.type
(concept_definition name: (_) @name) @def.type
(function_definition declarator: (function_declarator declarator: [(identifier) (field_identifier) (qualified_identifier)
  (operator_name) (destructor_name)] @name)) @def.function
(function_definition declarator: (_ (function_declarator declarator: [(identifier) (field_identifier) (qualified_identifier)
  (operator_name)] @name))) @def.function
(function_definition declarator: (operator_cast) @name) @def.function
(function_definition body: (_) @body)
(function_definition (field_initializer_list) @body)
(field_declaration declarator: (function_declarator declarator: [(field_identifier) (operator_name)] @name)) @def.method
(field_declaration declarator: (_ (function_declarator declarator: (field_identifier) @name))) @def.method
(declaration declarator: (function_declarator declarator: [(identifier) (destructor_name)] @name)) @def.function
(declaration declarator: (_ (function_declarator declarator: (identifier) @name))) @def.function
(preproc_def name: (_) @name value: (_)) @def.constant
(preproc_function_def name: (_) @name) @def.macro
(translation_unit (declaration (type_qualifier) declarator: (init_declarator declarator: (identifier) @name)) @def.constant)
(namespace_definition body: (declaration_list (declaration (type_qualifier) declarator: (init_declarator declarator: (identifier) @name)) @def.constant))

; References
(call_expression function: [(identifier) @ref (field_expression field: (field_identifier) @ref) (qualified_identifier name: (identifier) @ref)
  (template_function name: (identifier) @ref) (qualified_identifier name: (template_function name: (identifier) @ref))])
(call_expression function: (qualified_identifier scope: (namespace_identifier) @ref))
(base_class_clause [(type_identifier) @ref (qualified_identifier name: (type_identifier) @ref) (template_type name: (_) @ref)])
(parameter_declaration type: [(type_identifier) @ref (qualified_identifier name: (type_identifier) @ref)])
(field_declaration type: [(type_identifier) @ref (qualified_identifier name: (type_identifier) @ref)])
(declaration type: [(type_identifier) @ref (qualified_identifier name: (type_identifier) @ref)])
(function_definition type: [(type_identifier) @ref (qualified_identifier name: (type_identifier) @ref)])
(new_expression type: [(type_identifier) @ref (qualified_identifier name: (type_identifier) @ref)])
(type_descriptor type: [(type_identifier) @ref (qualified_identifier name: (type_identifier) @ref)])
(template_type name: (type_identifier) @ref)

(preproc_include path: (_) @import)
