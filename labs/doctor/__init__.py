"""Is everything here that the course needs? Facts are gathered in one place, and judged in another."""
