"""What runs inside the harnesses' own virtual environments: it imports their packages, and nothing of ours."""
