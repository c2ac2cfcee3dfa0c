; Definitions
(function_declaration name: (_) @name body: (_) @body) @def.function
(method_declaration name: (_) @name body: (_) @body) @def.method
(method_declaration receiver: (parameter_list (parameter_declaration type: [
  (type_identifier) @owner
  (pointer_type (type_identifier) @owner)
  (generic_type type: (type_identifier) @owner)
  (pointer_type (generic_type type: (type_identifier) @owner))])))
(type_declaration "type" . [(type_spec) (type_alias)]) @outer
(type_spec name: (_) @name type: (struct_type (field_declaration_list) @body)) @def.struct
(type_spec name: (_) @name type: (interface_type "{" @body)) @def.interface
(type_spec name: (_) @name type: [(type_identifier) (function_type) (map_type) (slice_type) (pointer_type) (qualified_type)
  (generic_type) (array_type) (channel_type)]) @def.type
(type_alias name: (_) @name) @def.type
(interface_type (method_elem name: (_) @name) @def.method)
(const_declaration "const" . (const_spec)) @outer
(source_file (const_declaration (const_spec name: (_) @name) @def.constant))
(var_declaration "var" . (var_spec)) @outer
(source_file (var_declaration (var_spec name: (_) @name) @def.constant))
(source_file (var_declaration (var_spec_list (var_spec name: (_) @name) @def.constant)))

; References
(call_expression function: [(identifier) @ref (selector_expression field: (_) @ref)])
(parameter_declaration type: (_ (type_identifier) @ref))
(parameter_declaration type: (type_identifier) @ref)
(parameter_declaration type: [(qualified_type name: (_) @ref) (pointer_type (qualified_type name: (_) @ref))])
(field_declaration type: [(type_identifier) @ref (pointer_type (type_identifier) @ref) (slice_type (type_identifier) @ref)])
(field_declaration type: [(qualified_type name: (_) @ref) (pointer_type (qualified_type name: (_) @ref))])
(method_declaration result: [(type_identifier) @ref (pointer_type (type_identifier) @ref)])
(function_declaration result: [(type_identifier) @ref (pointer_type (type_identifier) @ref)])
(composite_literal type: [(type_identifier) @ref (qualified_type name: (_) @ref) (slice_type (type_identifier) @ref)])
(type_elem (type_identifier) @ref)

(import_spec path: (_) @import)
