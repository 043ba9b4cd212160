/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options of launchers: torchrun, deepspeed, accelerate, mpirun, and Slurm's srun and sbatch. Only
 * the number of processes matters; it is compared with the cluster. An option of the same name
 * after the program is the program's.
 */
#include "framework_config/configuration_launch.h"

#include "framework_config/common/config_messages.h"
#include "framework_config/common/config_values.h"

#include <inttypes.h>
#include <string.h>

/* clang-format off */
#define READ LH_CONFIG_READ
#define NOTHING LH_CONFIG_NOTHING

const LhConfigKey lh_config_launch_keys[] = {
    READ("nnodes"), READ("nproc-per-node"), READ("world-size"), READ("num-nodes"),
    READ("num-gpus"), READ("nodes"), READ("ntasks-per-node"), READ("gpus-per-node"),
    NOTHING("node-rank"), NOTHING("master-addr"), NOTHING("master-port"), NOTHING("max-restarts"),
    NOTHING("monitor-interval"), NOTHING("start-method"), NOTHING("role"), NOTHING("redirects"),
    NOTHING("tee"), NOTHING("rdzv-backend"), NOTHING("rdzv-conf"), NOTHING("rdzv-endpoint"),
    NOTHING("rdzv-id"), NOTHING("local-rank"), NOTHING("local-ranks-filter"),
    NOTHING("local-addr"), NOTHING("standalone"), NOTHING("no-python"), NOTHING("module"),
    NOTHING("m"), NOTHING("u"), NOTHING("log-dir"), NOTHING("hostfile"), NOTHING("include"),
    NOTHING("exclude"), NOTHING("launcher"), NOTHING("force-multi"), NOTHING("no-local-rank"),
    NOTHING("np"), NOTHING("x"), NOTHING("mca"), NOTHING("bind-to"), NOTHING("map-by"),
    NOTHING("allow-run-as-root"), NOTHING("report-bindings"), NOTHING("oversubscribe"),
    NOTHING("jobid"), NOTHING("job-name"), NOTHING("wait"), NOTHING("kill-on-bad-exit"),
    NOTHING("label"), NOTHING("unbuffered"), NOTHING("ntasks"), NOTHING("gres"),
    NOTHING("gpus-per-task"), NOTHING("cpus-per-task"), NOTHING("cpu-bind"),
    NOTHING("cpu-bind-type"), NOTHING("gpu-bind"), NOTHING("mem-bind"), NOTHING("mem"),
    NOTHING("mpi"), NOTHING("export"), NOTHING("nodelist"), NOTHING("exclusive"),
    NOTHING("account"), NOTHING("partition"), NOTHING("time"), NOTHING("dependency"),
    NOTHING("container-image"), NOTHING("container-mounts"), NOTHING("container-name"),
    NOTHING("container-workdir"), NOTHING("container-env"), NOTHING("container-writable"),
    NOTHING("no-container-mount-home"), NOTHING("container-mount-home"), NOTHING("auto-resume"),
    { NULL, LH_KEY_NOTHING, NULL, NULL },
};
/* clang-format on */

/* Two options whose product is the number of processes. */
typedef struct {
    const char *nodes, *each;
} Launch;

/* Number of processes; 0 if the options are not plain numbers (launchers also accept ranges of
 * nodes). */
static uint64_t
product_of(const LhConfig *c, const Launch *launch)
{
    uint64_t nodes = 0, each = 0;

    if (!lh_config_count(c, launch->nodes, &nodes, NULL) ||
        !lh_config_count(c, launch->each, &each, NULL) || nodes > UINT16_MAX || each > UINT16_MAX)
        return 0;
    return nodes * each;
}

void
lh_config_launch(LhConfig *c)
{
    static const Launch launches[] = { { "nnodes", "nproc-per-node" },
                                       { "num-nodes", "num-gpus" },
                                       { "nodes", "gpus-per-node" },
                                       { "nodes", "ntasks-per-node" } };
    const char *said = c->processes == 0                          ? NULL
                       : lh_config_entry(c, "world-size") != NULL ? "world-size"
                                                                  : "num-processes";

    for (guint i = 0; i < G_N_ELEMENTS(launches); i++) {
        const uint64_t processes = product_of(c, &launches[i]);

        /* With one task per node, that task starts the other processes. */
        if (processes == 0 || (i == 3 && (c->processes != 0 || said != NULL)))
            continue;
        if (said != NULL && processes != c->processes)
            lh_config_note(c, lh_config_entry(c, launches[i].nodes),
                           "--%s and --%s start %" PRIu64 " processes, but --%s starts %" PRIu64
                           "; one of them is wrong",
                           launches[i].nodes, launches[i].each, processes, said, c->processes);
        if (c->processes == 0)
            c->processes = processes;
        if (said == NULL)
            said = launches[i].nodes;
    }
}
