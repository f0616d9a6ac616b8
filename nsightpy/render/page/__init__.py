"""A report page as one offline file."""
