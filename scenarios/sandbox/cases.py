"""What tests against a sandbox have in common."""

from __future__ import annotations

import unittest
from typing import ClassVar

from scenarios.sandbox.client import ControlClient
from scenarios.sandbox.process import SandboxProcess


class SandboxCase(unittest.TestCase):
    """One sandbox process for the class; each test begins with it reset and its clock frozen.

    A test also fails if the sandbox reported a defect of its own.
    """

    services: ClassVar[tuple[str, ...]]
    options: ClassVar[dict[str, str]] = {}
    sandbox: ClassVar[SandboxProcess]
    control: ControlClient

    @classmethod
    def setUpClass(cls) -> None:
        cls.sandbox = SandboxProcess(*cls.services, options=cls.options).start()

    @classmethod
    def tearDownClass(cls) -> None:
        cls.sandbox.stop()

    def setUp(self) -> None:
        for control in self.sandbox.controls.values():
            control.reset()
            control.freeze()
        self.control = self.sandbox.control

    def tearDown(self) -> None:
        self.assertEqual(self.sandbox.printed(), "", "the sandbox itself reported a defect")
