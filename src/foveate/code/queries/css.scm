(stylesheet (rule_set (selectors) @name (block) @body) @def.rule)
(media_statement (block) @body) @def.rule
(media_statement [(feature_query) (binary_query) (keyword_query) (parenthesized_query) (unary_query)] @name)
(keyframes_statement (keyframes_name) @name (keyframe_block_list) @body) @def.rule

(import_statement [(string_value) @import (call_expression (arguments (_) @import))])
