"""Beside the route, supervision: lets humans see every exchange and hold the brake, in one Telegram group."""
