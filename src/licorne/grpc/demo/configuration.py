"""The demonstration's queues: most features of a queue configuration, each on a small scale."""

from __future__ import annotations

SETTINGS = {"reservation.delay": "12s"}
"""Settings of the scheduler. With the default delay, the many asks that wait would reserve nearly all nodes."""
CONFIGURATION = """\
partitions:
  - name: default
    nodesortpolicy:
      type: binpacking
    preemption:
      enabled: true
      quotapreemptionenabled: true
    placementrules:
      # The queue that an application names, if it is there; else one for its namespace.
      - name: provided
        create: false
      - name: tag
        value: namespace
        create: true
        parent:
          name: fixed
          value: root.tenants
    queues:
      - name: root
        limits:
          - limit: anybody
            users: ["*"]
            maxapplications: 25
        queues:
          # Few, important, and served first: builds make room for them.
          - name: services
            submitacl: shop,search
            properties:
              priority.offset: "100"
              preemption.delay: 3s
            resources:
              guaranteed: {vcore: "120", memory: 480Gi}
              max: {vcore: "200", memory: 800Gi}
          - name: batch
            properties:
              quota.preemption.delay: 2s
            resources:
              max: {vcore: "300", memory: 1300Gi}
            queues:
              - name: builds
                submitacl: "*"
                maxapplications: 12
                properties:
                  application.sort.policy: fair
                resources:
                  guaranteed: {vcore: "40", memory: 120Gi}
                limits:
                  - limit: a developer's builds
                    users: ["*"]
                    maxresources: {vcore: "64"}
                    maxapplications: 4
                  - limit: all developers
                    groups: [developers]
                    maxresources: {vcore: "200"}
              - name: reports
                submitacl: finance,sales
                properties:
                  application.sort.policy: fifo
                resources:
                  guaranteed: {vcore: "40", memory: 240Gi}
                limits:
                  - limit: the business
                    groups: [business]
                    maxresources: {vcore: "160"}
          - name: research
            submitacl: " research"
            resources:
              guaranteed: {nvidia.com/gpu: 20}
              max: {nvidia.com/gpu: 40}
            limits:
              - limit: research
                groups: [research]
                maxresources: {nvidia.com/gpu: 40}
            queues:
              # Gangs, with placeholders.
              - name: training
                properties:
                  application.sort.policy: fifo
                resources:
                  guaranteed: {nvidia.com/gpu: 8}
              # Gangs that start as a whole.
              - name: sweeps
                properties:
                  application.sort.policy: fifo
                  gang.scheduling: atomic
                limits:
                  - limit: a researcher's sweeps
                    users: ["*"]
                    maxresources: {nvidia.com/gpu: 10}
                    maxapplications: 4
              - name: notebooks
                properties:
                  application.sort.policy: fair
                  preemption.delay: 5s
                resources:
                  guaranteed: {nvidia.com/gpu: 6}
          # What runs on each node.
          - name: system
            submitacl: cluster
            properties:
              priority.offset: "1000"
          # A queue for each namespace, made when it is needed, and gone when it is empty.
          - name: tenants
            parent: true
            submitacl: "*"
            resources:
              max: {vcore: "120", memory: 480Gi}
            childtemplate:
              maxapplications: 6
              resources:
                max: {vcore: "40", memory: 160Gi}
"""
