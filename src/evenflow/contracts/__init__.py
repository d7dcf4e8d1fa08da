"""What REST takes and answers, once for the API, its clients and its description."""
