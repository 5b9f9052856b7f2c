"""Remedies that are mechanical, proposed as edits that a person reviews: a finding in, new part contents out."""
