; Definitions
(decorated_definition) @decorated
(class_definition name: (identifier) @name body: (block) @body) @def.class
(function_definition name: (identifier) @name body: (block) @body) @def.function
(type_alias_statement left: (type) @name) @def.type
(module (expression_statement (assignment left: (identifier) @name) @def.CONSTANT))

(module . (comment)* . (expression_statement (string) @doc))
(class_definition body: (block . (expression_statement (string) @doc)))
(function_definition body: (block . (expression_statement (string) @doc)))

; References: what is called, inherited from, used as a type or as a decorator
(call function: [(identifier) @ref (attribute attribute: (identifier) @ref)])
(class_definition superclasses: (argument_list [(identifier) @ref (attribute attribute: (identifier) @ref)]))
(decorator [(identifier) @ref (attribute attribute: (identifier) @ref)])
(type [(identifier) @ref (attribute attribute: (identifier) @ref)])
(type (binary_operator [(identifier) @ref (attribute attribute: (identifier) @ref)]))
(generic_type (identifier) @ref)
(except_clause [(identifier) @ref (attribute attribute: (identifier) @ref)])
(raise_statement (identifier) @ref)

; Imports; an imported name is a use of it
(import_statement name: [(dotted_name) @import (aliased_import name: (dotted_name) @import)])
(import_from_statement module_name: (_) @import)
(import_from_statement name: (dotted_name (identifier) @ref) @member)
(import_from_statement name: (aliased_import name: (dotted_name (identifier) @ref) @member))
