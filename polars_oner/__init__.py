"""The one column that tells most about a target, and by what rule."""
