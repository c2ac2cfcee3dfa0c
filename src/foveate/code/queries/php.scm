; Definitions
(class_declaration name: (_) @name body: (_) @body) @def.class
(interface_declaration name: (_) @name body: (_) @body) @def.interface
(trait_declaration name: (_) @name body: (_) @body) @def.trait
(enum_declaration name: (_) @name body: (_) @body) @def.enum
(function_definition name: (_) @name body: (_) @body) @def.function
(method_declaration name: (_) @name) @def.method
(method_declaration body: (_) @body)
(const_declaration (const_element (name) @name)) @def.constant

; References
(function_call_expression function: [(name) @ref (qualified_name (name) @ref)])
(member_call_expression name: (name) @ref)
(nullsafe_member_call_expression name: (name) @ref)
(scoped_call_expression scope: (name) @ref)
(scoped_call_expression name: (name) @ref)
(object_creation_expression [(name) @ref (qualified_name (name) @ref)])
(base_clause [(name) @ref (qualified_name (name) @ref)])
(class_interface_clause [(name) @ref (qualified_name (name) @ref)])
(use_declaration [(name) @ref (qualified_name (name) @ref)])
(named_type [(name) @ref (qualified_name (name) @ref)])
(attribute [(name) @ref (qualified_name (name) @ref)])

(namespace_use_clause [(name) (qualified_name)] @import)
(require_once_expression (_) @import)
(require_expression (_) @import)
(include_expression (_) @import)
