"""What people read: explanations, listings, the machine's health.

explain     path, reasons, proof table and floors of one shape
listing     targets x families, and what is built
doctor      tools and devices found here
"""
