/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds a setup from a scenario.
 */
#include "scenario/setup.h"

#include "base/files/file_input.h"
#include "model/model_file.h"
#include "model/parameters.h"
#include "program/explicit/explicit_read.h"
#include "scenario/config_check.h"
#include "scenario/schedule_pairs.h"
#include "scenario/seq_length_rounding.h"
#include "scenario/setup_cluster.h"
#include "scenario/setup_inputs.h"
#include "scenario/setup_model.h"
#include "scenario/setup_params.h"
#include "scenario/step/setup_step.h"

/* ---- the model ---- */

LhDocuments *
lh_setup_load_documents(const LhScenario *s, GError **error)
{
    return s->document_lengths == NULL ? NULL : lh_documents_load(s->document_lengths, error);
}

GPtrArray *
lh_setup_schedules(const LhScenario *s, GError **error)
{
    g_autoptr(GPtrArray) schedules = g_ptr_array_new();

    if (s->schedule == NULL) {
        for (guint i = 0; s->schedule_file == NULL && lh_schedules[i] != NULL; i++)
            g_ptr_array_add(schedules, (gpointer)lh_schedules[i]);
        return g_steal_pointer(&schedules);
    }
    for (guint i = 0; i < s->schedule->len; i++) {
        g_autoptr(GError) cause = NULL;
        const LhSchedule *schedule = lh_schedule_find(g_ptr_array_index(s->schedule, i), &cause);

        if (schedule == NULL) {
            lh_scenario_error(s, "schedule", error, "%s", cause->message);
            return NULL;
        }
        if (g_ptr_array_find(schedules, schedule, NULL)) {
            lh_scenario_error(s, "schedule", error, "%s is named twice", schedule->name);
            return NULL;
        }
        g_ptr_array_add(schedules, (gpointer)schedule);
    }
    return g_steal_pointer(&schedules);
}

LhProgram *
lh_setup_load_program(const LhScenario *s, GError **error)
{
    const char *field = lh_scenario_program_field(s);

    if (s->schedule_file == NULL && s->unproven)
        lh_scenario_error(s, "unproven", error, "--unproven needs a program of --schedule-file");
    if (s->schedule_file == NULL)
        return NULL;
    if (field != NULL) {
        lh_scenario_error(s, field, error, "the schedule file %s defines this itself; leave it out",
                          s->schedule_file);
        return NULL;
    }
    return lh_program_load(s->schedule_file, error);
}

/* --- the cluster --------------------------------------------------------------------------------
 */

static bool
fill_explicit(LhSetup *setup, GError **error)
{
    const LhScenario *s = setup->scenario;
    gsize length;
    g_autofree char *text = lh_input_read(s->schedule_file, LH_JSON_BYTES_MAX, &length, error);
    g_autofree char *sha256 = NULL;

    if (text == NULL)
        return false;
    sha256 = g_compute_checksum_for_data(G_CHECKSUM_SHA256, (const guchar *)text, length);
    lh_setup_add_input(setup, "schedule_file", NULL, s->schedule_file, sha256);
    setup->params = setup->program->params;
    return true;
}

static bool
load_documents(LhSetup *setup, GError **error)
{
    const LhScenario *s = setup->scenario;

    if (s->document_lengths == NULL)
        return true;
    setup->documents = lh_setup_load_documents(s, error);
    if (setup->documents == NULL)
        return false;
    lh_setup_add_input(setup, "document_lengths", NULL, s->document_lengths,
                       setup->documents->sha256);
    return true;
}

/* Drops schedules that support only the other kind of attention, unless schedules were named. */
static void
leave_out(LhSetup *setup)
{
    for (guint i = 0; setup->scenario->schedule == NULL && i < setup->schedules->len;) {
        const LhSchedule *schedule = g_ptr_array_index(setup->schedules, i);

        if (lh_schedule_takes(schedule, setup->params.attention.linear)) {
            i++;
            continue;
        }
        g_ptr_array_remove_index(setup->schedules, i);
        setup->left_out++;
    }
}

/* Selects the schedules: pairs for models with both kinds of attention, else the schedules for the
 * one kind. */
static bool
choose_schedules(LhSetup *setup, GError **error)
{
    const LhScenario *s = setup->scenario;
    const bool pairs = lh_pairs_wanted(s, setup->model);
    const uint32_t context = setup->step != NULL ? setup->step->params.module.ranks : 0;

    if (!pairs)
        leave_out(setup);
    return lh_pairs_of(s, setup->model, context, setup->schedules, &setup->left_out, error) &&
           lh_check_read(s, setup->schedules, pairs || setup->params.attention.linear, error);
}

/* The framework of an attention module, which has one only if it is named. */
static bool
load_module_framework(LhSetup *setup, GError **error)
{
    const LhScenario *s = setup->scenario;

    if (s->framework == NULL)
        return true;
    if (!lh_setup_check_name(s, "framework", "frameworks", s->framework, error))
        return false;
    setup->framework = lh_framework_load(s->framework, error);
    return setup->framework != NULL;
}

/* Selects the framework's attention kernels, unless the scenario selects some. */
static void
use_framework_kernels(LhSetup *setup)
{
    const char *library = setup->framework != NULL ? setup->framework->attention_kernel : NULL;

    if (library != NULL && setup->scenario->attention_kernel == NULL &&
        lh_attention_has(setup->device, library))
        lh_device_use_library(setup->device, library);
}

static bool
fill_program(LhSetup *setup, uint32_t ranks, GError **error)
{
    const LhScenario *s = setup->scenario;
    LhStepSizes sizes = { .tensor = 1, .pipeline = 1 };
    LhSources sources;

    if (setup->program != NULL)
        return fill_explicit(setup, error);
    if (!lh_setup_check_step_fields(s, error) ||
        (s->step && !lh_setup_step_sizes(s, ranks, &sizes, error)))
        return false;
    setup->model = lh_setup_load_model(s, error);
    if (setup->model == NULL)
        return false;
    if (s->model == NULL && s->model_text != NULL)
        lh_setup_add_input(setup, "model", NULL, s->model_file, setup->model->sha256);
    else if (s->model != NULL || lh_setup_takes_default_model(s))
        lh_setup_add_input(setup, "model", "models", s->model != NULL ? s->model : LH_DEFAULT_MODEL,
                           setup->model->sha256);
    if (!load_documents(setup, error))
        return false;
    sources = (LhSources){
        .model = setup->model,
        .documents = setup->documents,
        .gpus_per_node = (uint32_t)setup->topology->gpus_per_node,
    };
    if (!lh_setup_params(s, &sources, s->step ? sizes.context * sizes.data : ranks, &setup->params,
                         error) ||
        (s->step && !lh_setup_fill_step(setup, &sizes, error)))
        return false;
    if (setup->step == NULL && !load_module_framework(setup, error))
        return false;
    use_framework_kernels(setup);
    if (setup->framework != NULL)
        lh_setup_add_input(setup, "framework", "frameworks",
                           s->framework != NULL ? s->framework : setup->framework->name,
                           setup->framework->sha256);
    return choose_schedules(setup, error) && lh_seq_length_round(setup, error);
}

static bool
fill_setup(LhSetup *setup, GError **error)
{
    const LhScenario *s = setup->scenario;
    g_autoptr(GError) cause = NULL;
    uint32_t ranks = 0;

    if (s->json != NULL)
        lh_setup_add_input(setup, "scenario", NULL, s->path, lh_json_sha256(s->json));
    setup->cost = s->cost < 0 ? LH_COST_DEVICE : (LhCostMode)s->cost;
    setup->network_model = s->network < 0 ? LH_NETWORK_FAIR : (LhNetworkModel)s->network;
    setup->schedules = lh_setup_schedules(s, error);
    if (setup->schedules == NULL)
        return false;
    setup->program = lh_setup_load_program(s, &cause);
    if (cause != NULL) {
        g_propagate_error(error, g_steal_pointer(&cause));
        return false;
    }
    if (!lh_check_cost(s, error) || !lh_setup_build_cluster(setup, &ranks, error))
        return false;
    setup->collectives = lh_setup_collectives(setup, setup->network_model, ranks);
    return fill_program(setup, ranks, error);
}

LhSetup *
lh_setup_new(const LhScenario *scenario, GError **error)
{
    g_autoptr(LhSetup) setup = g_new0(LhSetup, 1);

    setup->scenario = scenario;
    setup->inputs = g_ptr_array_new_with_free_func(lh_setup_input_free);
    if (!fill_setup(setup, error))
        return NULL;
    return g_steal_pointer(&setup);
}

LhSetup *
lh_setup_new_cluster(const LhScenario *s, GError **error)
{
    g_autoptr(LhSetup) setup = g_new0(LhSetup, 1);
    uint32_t ranks;

    setup->scenario = s;
    setup->inputs = g_ptr_array_new_with_free_func(lh_setup_input_free);
    setup->network_model = s->network < 0 ? LH_NETWORK_FAIR : (LhNetworkModel)s->network;
    if (!lh_setup_build_cluster(setup, &ranks, error))
        return NULL;
    setup->collectives = lh_setup_collectives(setup, setup->network_model, ranks);
    return g_steal_pointer(&setup);
}

bool
lh_setup_check_one(const LhSetup *setup, GError **error)
{
    /* Where the sequence is on one rank, any schedule represents all. */
    const bool alone = setup->step != NULL && setup->step->params.module.ranks == 1;

    return setup->program != NULL || alone || !lh_pairs_wanted(setup->scenario, setup->model) ||
           lh_pairs_check_one(setup->scenario, setup->schedules, error);
}

void
lh_setup_free(LhSetup *setup)
{
    if (setup == NULL)
        return;
    lh_setup_clear_step(setup);
    lh_framework_free(setup->framework);
    lh_model_free(setup->model);
    lh_documents_free(setup->documents);
    lh_topology_free(setup->topology);
    lh_device_free(setup->device);
    lh_program_free(setup->program);
    g_clear_pointer(&setup->schedules, g_ptr_array_unref);
    g_clear_pointer(&setup->inputs, g_ptr_array_unref);
    g_free(setup);
}
