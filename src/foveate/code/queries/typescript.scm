; Definitions
(export_statement declaration: (_)) @outer
(ambient_declaration (_)) @outer
(class_body (decorator) @above)
(class_declaration name: (_) @name body: (_) @body) @def.class
(abstract_class_declaration name: (_) @name body: (_) @body) @def.class
(interface_declaration name: (_) @name body: (_) @body) @def.interface
(enum_declaration name: (_) @name body: (_) @body) @def.enum
(type_alias_declaration name: (_) @name) @def.type
(internal_module name: (_) @name body: (_) @body) @def.module
(module name: (_) @name body: (_) @body) @def.module
(function_declaration name: (_) @name body: (_) @body) @def.function
(generator_function_declaration name: (_) @name body: (_) @body) @def.function
(function_signature name: (_) @name) @def.function
(method_definition name: (_) @name body: (_) @body) @def.method
(method_signature name: (_) @name) @def.method
(abstract_method_signature name: (_) @name) @def.method
(public_field_definition name: (_) @name value: [(arrow_function body: (_) @body) (function_expression body: (_) @body)]) @def.method
(lexical_declaration . (variable_declarator value: [(arrow_function) (function_expression) (class)])) @outer
(variable_declarator name: (identifier) @name value: [(arrow_function body: (_) @body) (function_expression body: (_) @body)]) @def.function
(variable_declarator name: (identifier) @name value: (class body: (_) @body)) @def.class
(program (export_statement declaration: (lexical_declaration (variable_declarator name: (identifier) @name) @def.constant)))
(program (lexical_declaration . (variable_declarator)) @outer)
(program (lexical_declaration (variable_declarator name: (identifier) @name) @def.CONSTANT))
(program (export_statement "default" @name value: [(arrow_function) (function_expression)]) @def.function)
(program (export_statement "default" @name value: (class body: (_) @body)) @def.class)
(program (export_statement "default" @name value: [(object) (call_expression) (array)]) @def.constant)

; The functions of an object
(object (pair key: (property_identifier) @name value: [(arrow_function body: (statement_block) @body) (function_expression body: (_) @body)]) @def.function)

; References
(call_expression function: [(identifier) @ref (member_expression property: (_) @ref)])
(new_expression constructor: [(identifier) @ref (member_expression property: (_) @ref)])
(extends_clause value: [(identifier) @ref (member_expression property: (_) @ref)])
(decorator [(identifier) @ref (member_expression property: (_) @ref)])
(type_identifier) @ref
(import_specifier name: (identifier) @ref)

; Imports
(import_statement source: (string) @import)
(export_statement source: (string) @import)
(call_expression function: (import) arguments: (arguments . (string) @import .))
