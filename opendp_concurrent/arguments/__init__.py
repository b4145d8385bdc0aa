"""What is checked of arguments, how they are copied, and how a constructor was called."""
