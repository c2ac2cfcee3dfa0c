(function_definition name: (_) @name body: (_) @body) @def.function
(program (variable_assignment name: (variable_name) @name) @def.CONSTANT)
(program (declaration_command (variable_assignment name: (variable_name) @name)) @def.CONSTANT)

(command name: (command_name (word) @ref))

(command name: (command_name (word)) . argument: (_) @required)
