"""One widget a file: data in by reactives, out by messages; none touches the disk."""
