"""The composition root, of the server and of its child: the only place that names an adapter."""
