// Package job is durable and periodic work, on river: jobs are rows, and any replica works them. Of all replicas one is
// the leader, which puts in what is due; another takes over when it stops or dies.
//
// What must hold:
//   - A job is put in by the transaction it belongs to, and is worked if and only if that commits.
//   - A job may be worked twice, after a crash; its handler makes nothing of it.
//   - Of one periodic job there is never more than one at a time, whatever the number of replicas.
//   - Nothing here is on the way of a call: a hop through the queue takes tens of milliseconds.
//   - Run returns once what runs here has ended, or was handed back.
package job
