; Definitions
(class name: (_) @name) @def.class
(class name: (_) . (superclass)? . (body_statement) @body)
(module name: (_) @name) @def.module
(module body: (body_statement) @body)
(method name: (_) @name) @def.method
(program (method) @def.function)
(method body: (_) @body)
(singleton_method name: (_) @name) @def.method
(singleton_method body: (_) @body)
(program (assignment left: (constant) @name) @def.constant)
(body_statement (assignment left: (constant) @name) @def.constant)

; References
(call method: (_) @ref)
(call receiver: [(constant) @ref (scope_resolution name: (_) @ref)])
(superclass [(constant) @ref (scope_resolution name: (_) @ref)])
(call !receiver method: (identifier) arguments: (argument_list (constant) @ref))

(call !receiver method: (identifier) arguments: (argument_list . (string (string_content) @required) .))
