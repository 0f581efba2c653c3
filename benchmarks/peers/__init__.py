"""Other ways to keep the same facts, measured in the same run: each as durable as it says it is."""
