"""Fields that are typed or chosen in, and forms made of them."""
