"""What notebooks and labs share: parameters, a running server, predictions, quizzes, one run's records."""
