"""What others build on the package."""
