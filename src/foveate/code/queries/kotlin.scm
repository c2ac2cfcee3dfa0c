; Definitions
(class_declaration "class" name: (identifier) @name) @def.class
(class_declaration "interface" name: (identifier) @name) @def.interface
(class_declaration (enum_class_body)) @def.enum
(class_declaration [(class_body) (enum_class_body)] @body)
(object_declaration name: (identifier) @name) @def.object
(object_declaration (class_body) @body)
(companion_object (class_body) @body)
(function_declaration name: (identifier) @name) @def.function
(function_declaration (function_body) @body)
(function_declaration . (modifiers)? . "fun" . (user_type (identifier) @owner))
(type_alias (identifier) @name) @def.type
(source_file (property_declaration (variable_declaration (identifier) @name)) @def.constant)
(companion_object (class_body (property_declaration (variable_declaration (identifier) @name)) @def.CONSTANT))

; References
(call_expression . [(identifier) @ref (navigation_expression (_) (identifier) @ref)])
(user_type (identifier) @ref)
(annotation (identifier) @ref)

(import (qualified_identifier) @import)
