/*
 * Programs over NCCL, without GPUs: the backend's own code on a stand-in for NCCL and one for CUDA's
 * streams, with the kernels of the processor. What the stand-ins find is a failure, and so is any
 * bit that differs from a run on the processor.
 */
#include "running.h"
#include "standin/standin.h"
#include "standin_device.h"

#include <dlfcn.h>
#include <string.h>

static const LhBackend backend = {
    .name = "nccl",
    .control = &lh_control_single,
    .links = &lh_links_nccl,
    .device = &standin_cpu_device,
};

/* Communicators that nobody has given back. */
static unsigned
end_of_nccl(void)
{
    unsigned (*end)(void);
    void *library = dlopen(g_getenv("LONGHAUL_NCCL"), RTLD_NOW | RTLD_NOLOAD);
    void *function;

    if (library == NULL)
        return 0;
    function = dlsym(library, "standin_nccl_end");
    memcpy(&end, &function, sizeof(function));
    dlclose(library);
    return end();
}

static LhExecuted *
run_on(const LhBackend *on, LhProgram *program, GError **error)
{
    const LhExecuteParams params = { .backend = on, .deadline_ps = 20 * LH_PS_PER_S };
    g_autoptr(LhScenario) scenario = lh_scenario_new();
    g_autoptr(LhSetup) setup = NULL;

    scenario->ranks = lh_program_ranks(program);
    setup = lh_setup_new(scenario, error);
    return setup == NULL ? NULL : lh_execute_program(setup, program, &params, error);
}

/* How the stand-in behaves. */
typedef struct {
    uint32_t queues, eager;
    uint64_t seed;
} Way;

static const Way ways[] = { { 0, 0, 1 }, { 1, 0, 2 }, { 4, 40, 3 }, { 0, 100, 4 } };

static void
check_run(const char *name, LhProgram *program, const char *digest, const Way *way)
{
    const StandinOptions options = { .seed = way->seed,
                                     .devices = lh_program_ranks(program),
                                     .queues = way->queues,
                                     .eager = way->eager };
    g_autoptr(GError) error = NULL;
    g_autoptr(LhExecuted) executed = NULL;

    standin_start(&options);
    executed = run_on(&backend, program, &error);
    ck_assert_msg(executed != NULL, "%s, %u queues, %u %% eager: %s\n%s", name, way->queues,
                  way->eager, error != NULL ? error->message : "", standin_findings());
    ck_assert_uint_eq(end_of_nccl(), 0);
    standin_end();
    ck_assert_msg(standin_findings()[0] == '\0', "%s: %s", name, standin_findings());
    ck_assert(lh_executed_ok(executed));
    ck_assert_str_eq(executed->digest, digest);
}

START_TEST(schedules_give_the_bits_of_the_processor)
{
    static const uint32_t ranks[] = { 2, 3, 4, 5, 8 };
    const LhSchedule *schedule = lh_schedules[_i];
    uint32_t run = 0;

    for (size_t i = 0; i < G_N_ELEMENTS(ranks); i++) {
        const Case c = small_case(schedule, ranks[i]);
        g_autoptr(LhProgram) program = program_of(&c);
        g_autoptr(GError) error = NULL;
        g_autoptr(LhExecuted) here = NULL;

        if (program == NULL)
            continue;
        here = run_on(&lh_backend_cpu, program, &error);
        ck_assert_msg(here != NULL, "%s: %s", schedule->name, error != NULL ? error->message : "");
        for (size_t k = 0; k < G_N_ELEMENTS(ways); k++)
            check_run(schedule->name, program, here->digest, &ways[k]);
        run++;
    }
    ck_assert_uint_gt(run, 0);
}
END_TEST

int
main(void)
{
    const TTest *const loops[] = { schedules_give_the_bits_of_the_processor };

    return run_suite("nccl", loops, G_N_ELEMENTS(loops), NULL, 0);
}
