(create_table (object_reference) @name) @def.table
(create_view (object_reference) @name) @def.view
(create_materialized_view (object_reference) @name) @def.view
(create_function . (_)* (object_reference) @name) @def.function
(create_index column: (identifier) @name) @def.index
(create_type (object_reference) @name) @def.type
(create_trigger (object_reference) @name) @def.trigger
(create_schema (identifier) @name) @def.schema
(create_table (column_definitions) @body)
(create_function (function_body) @body)

(column_definition (object_reference name: (_) @ref))
(insert (object_reference name: (_) @ref))
(relation (object_reference name: (_) @ref))
(invocation (object_reference name: (_) @ref))
