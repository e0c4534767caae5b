"""What research claims, as studies: each has a number that could have come out otherwise."""
