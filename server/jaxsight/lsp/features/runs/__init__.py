"""Commands about runs of the user's programs: until functions were seen, and their profiles."""
