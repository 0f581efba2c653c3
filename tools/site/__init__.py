"""What `mkdocs build` needs beyond Markdown: the order of the pages, links, and the generated reference."""
