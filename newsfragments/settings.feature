`telegram.json` can be shared with other programs and edited while the daemon runs: nobody's keys are lost, and damage is moved aside.
