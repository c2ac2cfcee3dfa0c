; Which of them are headings or have an id is read off their first tag: a predicate takes longer than parsing
(element) @element
