"""What is made of the code: the manual page, and the site of the documents."""
