; Definitions
(attribute_item) @above
(function_item name: (_) @name body: (_) @body) @def.function
(function_signature_item name: (_) @name) @def.function
(struct_item name: (_) @name) @def.struct
(struct_item body: (field_declaration_list) @body)
(union_item name: (_) @name body: (_) @body) @def.union
(enum_item name: (_) @name body: (_) @body) @def.enum
(trait_item name: (_) @name body: (_) @body) @def.trait
(source_file (type_item name: (_) @name) @def.type)
(mod_item name: (_) @name body: (_) @body) @def.module
(macro_definition name: (_) @name) @def.macro
(const_item name: (_) @name) @def.constant
(static_item name: (_) @name) @def.constant
(impl_item type: [(type_identifier) @name (generic_type type: (_) @name) (scoped_type_identifier name: (_) @name)
  (reference_type (type_identifier) @name)]) @scope

; References
(call_expression function: [(identifier) @ref (scoped_identifier name: (_) @ref) (field_expression field: (_) @ref)])
(call_expression function: (generic_function function: [(identifier) @ref (scoped_identifier name: (_) @ref) (field_expression field: (_) @ref)]))
(call_expression function: (scoped_identifier path: (identifier) @ref))
(macro_invocation macro: [(identifier) @ref (scoped_identifier name: (_) @ref)])
(type_identifier) @ref
(struct_expression name: (scoped_type_identifier name: (_) @ref))
(use_declaration argument: (scoped_identifier name: (_) @ref))
(use_list (identifier) @ref)

(use_declaration argument: (_) @import)
(mod_item name: (_) @import !body)
