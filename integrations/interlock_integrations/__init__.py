"""Gated tools for real services, one package a service: ``from interlock_integrations.stripe import StripeToolkit``.

Each needs its service's official SDK, installed by the extra of the same name
(``pip install 'interlock-tools[stripe]'``).
"""
