"""The parts of the PostgreSQL journal. Imported only where one is opened; needs ``psycopg``."""
