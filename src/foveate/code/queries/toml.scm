(document (pair . (_) @name) @def.key)
(table . (_) @name) @def.key
(table_array_element . (_) @name) @def.key
(table (pair . (_) @name) @def.key)
