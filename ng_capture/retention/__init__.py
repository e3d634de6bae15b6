"""Free disks of captures that a durable output covers: plan, execute, trash (design.md, promises 6 to 9)."""
