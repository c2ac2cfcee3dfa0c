; Definitions
(export_statement declaration: (_)) @outer
(class_declaration name: (_) @name body: (_) @body) @def.class
(function_declaration name: (_) @name body: (_) @body) @def.function
(generator_function_declaration name: (_) @name body: (_) @body) @def.function
(method_definition name: (_) @name body: (_) @body) @def.method
(field_definition property: (_) @name value: [(arrow_function body: (_) @body) (function_expression body: (_) @body)]) @def.method
(lexical_declaration . (variable_declarator value: [(arrow_function) (function_expression) (class)])) @outer
(variable_declarator name: (identifier) @name value: [(arrow_function body: (_) @body) (function_expression body: (_) @body)]) @def.function
(variable_declarator name: (identifier) @name value: (class body: (_) @body)) @def.class
(program (export_statement declaration: (lexical_declaration (variable_declarator name: (identifier) @name) @def.constant)))
(program (lexical_declaration . (variable_declarator)) @outer)
(program (lexical_declaration (variable_declarator name: (identifier) @name) @def.CONSTANT))
(program (export_statement "default" @name value: [(arrow_function) (function_expression)]) @def.function)
(program (export_statement "default" @name value: (class body: (_) @body)) @def.class)
(program (export_statement "default" @name value: [(object) (call_expression) (array)]) @def.constant)

; `exports.run = function () {}`, `Cart.prototype.add = function () {}`, and the functions of an exported object
(expression_statement (assignment_expression
  left: (member_expression property: (property_identifier) @name)
  right: [(function_expression body: (_) @body) (arrow_function body: (_) @body)])) @def.function
(expression_statement (assignment_expression
  left: (member_expression object: (member_expression object: (identifier) property: (property_identifier)) @owner)
  right: [(function_expression) (arrow_function)]))
(object (pair key: (property_identifier) @name value: [(arrow_function body: (statement_block) @body) (function_expression body: (_) @body)]) @def.function)

; References
(call_expression function: [(identifier) @ref (member_expression property: (_) @ref)])
(new_expression constructor: [(identifier) @ref (member_expression property: (_) @ref)])
(class_heritage [(identifier) @ref (member_expression property: (_) @ref)])
(decorator [(identifier) @ref (member_expression property: (_) @ref)])
(import_specifier name: (identifier) @ref)

; Imports
(import_statement source: (string) @import)
(export_statement source: (string) @import)
(call_expression function: (identifier) arguments: (arguments . (string) @required .))
(call_expression function: (import) arguments: (arguments . (string) @import .))
