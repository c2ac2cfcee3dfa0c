(section . (atx_heading heading_content: (inline) @name)) @def.section
(setext_heading heading_content: (paragraph) @name) @def.section
(section . (atx_heading) . (paragraph) @doc)
