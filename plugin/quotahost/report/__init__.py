"""What `quotahost report` draws: values, words, curves and the page. Nothing here knows Spark."""
