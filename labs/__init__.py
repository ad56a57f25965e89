"""The course's own package: what notebooks and labs share, and the exercises that check themselves."""
