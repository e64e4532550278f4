"""Sessions and their journals: what is known of the requests that came before."""
