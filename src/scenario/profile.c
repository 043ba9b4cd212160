/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profiles. What devices have, too, is read and written by the very table of devices, so it can be
 * copied between the files unchanged.
 */
#include "scenario/profile.h"

#include "base/error.h"
#include "base/json/json_encode.h"
#include "scenario/profile_links.h"
#include "sim/cost/device_fields.h"
#include "sim/network/collectives/measured.h"

#include <stddef.h>
#include <string.h>

#define PROFILE_AT(member) offsetof(LhProfile, member)
#define HOST_TIME_MAX_S 1.0
#define BANDWIDTH_MAX 1e15
#define CTAS_MAX 1024

const char *const lh_flows_names[] = { "node", "one", "all", "cycle", "fan", NULL };

static const char *const profile_schemas[] = { "longhaul.profile/1", "longhaul.profile/2", NULL };

/* As the links of a topology file, all five: half a measurement is none. */
static const LhField link_fields[] = {
    { .name = "bandwidth",
      .type = LH_FIELD_UNIT,
      .unit = LH_UNIT_BANDWIDTH,
      .offset = offsetof(LhLinkClass, bandwidth),
      .flags = LH_FIELD_REQUIRED,
      .min = 1,
      .max = BANDWIDTH_MAX,
      .description = "What transfers reach in each direction." },
    { .name = "latency",
      .type = LH_FIELD_UNIT,
      .unit = LH_UNIT_TIME,
      .offset = offsetof(LhLinkClass, latency_ps),
      .flags = LH_FIELD_REQUIRED,
      .min = 0,
      .max = HOST_TIME_MAX_S,
      .description = "What this kind of link adds to the latency of a route, once per route." },
    { .name = "ctas",
      .type = LH_FIELD_UINT,
      .offset = offsetof(LhLinkClass, ctas),
      .flags = LH_FIELD_REQUIRED,
      .min = 0,
      .max = CTAS_MAX,
      .description = "SMs that a running send or receive kernel occupies at each end." },
    LH_FIELDS_EVIDENCE(LhLinkClass, from, LH_FIELD_REQUIRED, -1, "bandwidth and latency",
                       "the numbers come"),
    { .name = NULL },
};

#define LINK(key, member)                                                                          \
    {                                                                                              \
        .name = (key), .type = LH_FIELD_OBJECT, .offset = PROFILE_AT(member),                      \
        .fields = link_fields,                                                                     \
        .description =                                                                             \
            "What a message of two ranks alone reached over links of this class; the topology's "  \
            "change by what that is beside what the topology says of it."                          \
    }

#define SECONDS(Struct, key, text)                                                                 \
    {                                                                                              \
        .name = #key, .type = LH_FIELD_DOUBLE, .offset = offsetof(Struct, key),                    \
        .flags = LH_FIELD_REQUIRED, .min = 0, .max = -1, .description = (text)                     \
    }

#define NUMBER(Struct, key, text)                                                                  \
    {                                                                                              \
        .name = #key, .type = LH_FIELD_UINT, .offset = offsetof(Struct, key),                      \
        .flags = LH_FIELD_REQUIRED, .description = (text)                                          \
    }

static const LhField check_fields[] = {
    { .name = "op",
      .type = LH_FIELD_CHOICE,
      .offset = offsetof(LhProfileCheck, op),
      .flags = LH_FIELD_REQUIRED,
      .choices = lh_collective_names,
      .description = "The collective." },
    NUMBER(LhProfileCheck, ranks, "How many took part, from rank 0 on."),
    NUMBER(LhProfileCheck, bytes, "Of the whole vector."),
    SECONDS(LhProfileCheck, measured_s, "From the last start to the last end, in seconds."),
    SECONDS(LhProfileCheck, predicted_s, "The same, simulated on the cluster that was found."),
    { .name = NULL },
};

static const LhField message_fields[] = {
    { .name = "flows",
      .type = LH_FIELD_CHOICE,
      .offset = offsetof(LhProfileMessage, flows),
      .flags = LH_FIELD_REQUIRED,
      .choices = lh_flows_names,
      .description = "Who sent at the same time: all ranks to the next one of their node, one of "
                     "two nodes to each other, all of two nodes, all to the next node, or all to "
                     "all others." },
    NUMBER(LhProfileMessage, node, "One of the two nodes; 0 where all take part."),
    NUMBER(LhProfileMessage, peer, "The other one, likewise."),
    NUMBER(LhProfileMessage, bytes, "Of each message."),
    SECONDS(LhProfileMessage, measured_s, "What a round took, in seconds: the median."),
    SECONDS(LhProfileMessage, fitted_s,
            "What the simulator makes of it on the topology that was found."),
    { .name = "holdout",
      .type = LH_FIELD_BOOL,
      .offset = offsetof(LhProfileMessage, holdout),
      .flags = LH_FIELD_REQUIRED,
      .description = "Whether it was compared with the fit only." },
    { .name = NULL },
};

#define CALL(key, member, text)                                                                    \
    {                                                                                              \
        .name = key, .type = LH_FIELD_UNIT, .unit = LH_UNIT_TIME,                                  \
        .offset = offsetof(LhProfileHost, member), .flags = LH_FIELD_REQUIRED, .min = 0,           \
        .max = HOST_TIME_MAX_S, .description = text                                                \
    }

static const LhField host_fields[] = {
    CALL("op", op_ps, "To have a stream do nothing."),
    CALL("compute", compute_ps, "To have it run a kernel."),
    CALL("wait", wait_ps, "To have it wait for another stream, beside the op itself."),
    CALL("group", group_ps, "To have it send or receive a group of messages; 0: not measured."),
    CALL("sync", sync_ps, "From the end of the last op before a sync to the first one behind it."),
    { .name = NULL },
};

static const LhField about_fields[] = {
    { .name = "schema",
      .type = LH_FIELD_CHOICE,
      .offset = PROFILE_AT(schema),
      .flags = LH_FIELD_REQUIRED,
      .choices = profile_schemas,
      .description = "The format and its version." },
    { .name = "name",
      .type = LH_FIELD_STRING,
      .offset = PROFILE_AT(name),
      .flags = LH_FIELD_REQUIRED,
      .min = 1,
      .max = -1,
      .description = "Of the profile." },
    { .name = "description",
      .type = LH_FIELD_STRING,
      .offset = PROFILE_AT(description),
      .description = "What was measured, in a sentence." },
    { .name = "source",
      .type = LH_FIELD_STRING,
      .offset = PROFILE_AT(source),
      .flags = LH_FIELD_REQUIRED,
      .min = 1,
      .max = -1,
      .description = "Machine, date and tool of the measurement." },
    { .name = NULL },
};

/* Behind them stand the shared rows of the table of devices, then these. */
static const LhField measured_fields[] = {
    { .name = "messages",
      .type = LH_FIELD_ARRAY,
      .offset = PROFILE_AT(messages),
      .min = 0,
      .max = -1,
      .fields = message_fields,
      .element_size = sizeof(LhProfileMessage),
      .description = "Times of messages between ranks, for the record: the topology that was "
                     "written with the profile is made of them (longhaul.profile/2)." },
    { .name = "collective_checks",
      .type = LH_FIELD_ARRAY,
      .offset = PROFILE_AT(collective_checks),
      .min = 0,
      .max = -1,
      .fields = check_fields,
      .element_size = sizeof(LhProfileCheck),
      .description = "Times of collectives made of messages, for the record: they show how far "
                     "the constants of messages carry (longhaul.profile/2)." },
    LINK("nvlink", nvlink),
    LINK("pcie", pcie),
    LINK("nic", nic),
    { .name = "host",
      .type = LH_FIELD_OBJECT,
      .offset = PROFILE_AT(host),
      .fields = host_fields,
      .description =
          "Host times by kind of call, for the record: kernel_launch and stream_sync are "
          "made of them (longhaul.profile/2)." },
    { .name = "collective_times",
      .type = LH_FIELD_ARRAY,
      .offset = PROFILE_AT(collective_times),
      .min = 0,
      .max = -1,
      .fields = lh_collective_times_fields,
      .element_size = sizeof(LhCollectiveTimes),
      .description = "Times of collectives in a node, in place of the topology's of the same "
                     "operations (longhaul.profile/2)." },
    { .name = NULL },
};

static void
add_rows(GArray *rows, const LhField *fields)
{
    for (; fields->name != NULL; fields++)
        g_array_append_val(rows, *fields);
}

static void
add_shared_rows(GArray *rows)
{
    for (const LhField *field = lh_device_fields; field->name != NULL; field++) {
        LhField row = *field;

        row.offset += PROFILE_AT(device);
        row.flags = 0;
        if ((field->flags & LH_FIELD_SHARED) != 0)
            g_array_append_val(rows, row);
    }
}

const LhField *
lh_profile_fields(void)
{
    static LhField *fields = NULL;

    if (g_once_init_enter(&fields)) {
        GArray *rows = g_array_new(TRUE, FALSE, sizeof(LhField));

        add_rows(rows, about_fields);
        add_shared_rows(rows);
        add_rows(rows, measured_fields);
        g_once_init_leave(&fields, (LhField *)(void *)g_array_free(rows, FALSE));
    }
    return fields;
}

static bool
is_of_device(const LhField *row)
{
    return row->offset >= PROFILE_AT(device) &&
           row->offset < PROFILE_AT(device) + sizeof(LhDevice) && lh_field_number_size(row) > 0;
}

/* A measured 0 is not nothing. */
static void
set_nothing(const LhField *row, LhProfile *nothing)
{
    char *at = (char *)nothing + row->offset;

    if (!is_of_device(row))
        return;
    if (row->type == LH_FIELD_CHOICE)
        *(int *)(void *)at = -1;
    else if (row->type == LH_FIELD_UNIT && row->unit == LH_UNIT_TIME)
        *(LhTime *)(void *)at = -1;
}

const LhProfile *
lh_profile_nothing(void)
{
    static LhProfile nothing;
    static gsize ready = 0;

    if (g_once_init_enter(&ready)) {
        for (const LhField *row = lh_profile_fields(); row->name != NULL; row++)
            set_nothing(row, &nothing);
        g_once_init_leave(&ready, 1);
    }
    return &nothing;
}

void
lh_profile_write(const LhProfile *profile, bool fine, GString *out)
{
    g_autoptr(LhJsonWriter) w = lh_jsonw_new(out, false);

    if (fine)
        lh_jsonw_fine(w);
    lh_json_encode(w, NULL, lh_profile_fields(), profile, lh_profile_nothing());
}

/* Takes @json over. */
static LhProfile *
decode_profile(LhJson *json, GError **error)
{
    LhProfile *profile = g_new(LhProfile, 1);

    *profile = *lh_profile_nothing();
    if (!lh_json_decode(json, lh_profile_fields(), profile, false, error)) {
        lh_json_free(json);
        g_free(profile);
        return NULL;
    }
    profile->json = json;
    profile->sha256 = g_strdup(lh_json_sha256(json));
    return profile;
}

LhProfile *
lh_profile_parse(const char *file, const char *text, gsize length, GError **error)
{
    LhJson *json = lh_json_parse(file, text, length, error);

    return json == NULL ? NULL : decode_profile(json, error);
}

LhProfile *
lh_profile_load(const char *path, GError **error)
{
    LhJson *json = lh_json_load(path, error);

    return json == NULL ? NULL : decode_profile(json, error);
}

void
lh_profile_free(LhProfile *profile)
{
    if (profile == NULL)
        return;
    lh_json_clear(lh_profile_fields(), profile);
    lh_json_free(profile->json);
    g_free(profile->sha256);
    g_free(profile);
}

/* --- applying -----------------------------------------------------------------------------------
 */

static bool
check_kernel(const LhProfile *p, const LhDevice *device, guint index, GError **error)
{
    const LhKernelRate *rate = &g_array_index(p->device.kernels, LhKernelRate, index);
    g_autofree char *path = g_strdup_printf("kernels[%u].kernel", index);
    g_autofree char *rate_path = g_strdup_printf("kernels[%u].rate", index);
    g_autofree char *peak = lh_format_flops(device->matrix_rate);

    if (lh_kernel_find(rate->kernel) == LH_KERNELS_COUNT)
        return lh_json_error(p->json, path, error,
                             "there is no kernel \"%s\"; see longhaul list kernels", rate->kernel);
    if (rate->rate > device->matrix_rate)
        return lh_json_error(p->json, rate_path, error, "\"rate\" is above the peak of the %s, %s",
                             device->name, peak);
    return lh_device_check_curve(p->json, p->device.kernels, index, error);
}

static void
put_kernel(LhDevice *device, const LhKernelRate *rate)
{
    LhKernelRate copy = *rate;

    copy.kernel = g_strdup(rate->kernel);
    copy.from.source = g_strdup(rate->from.source);
    for (guint i = 0; i < device->kernels->len; i++) {
        LhKernelRate *row = &g_array_index(device->kernels, LhKernelRate, i);

        if (strcmp(row->kernel, rate->kernel) != 0 || row->mask != rate->mask ||
            row->head_dim != rate->head_dim)
            continue;
        g_free(row->kernel);
        g_free(row->from.source);
        *row = copy;
        return;
    }
    g_array_append_val(device->kernels, copy);
}

static bool
check_traffic(const LhProfile *p, guint index, GError **error)
{
    const char *name = g_array_index(p->device.elementwise, LhKernelTraffic, index).kernel;
    g_autofree char *path = g_strdup_printf("elementwise[%u].kernel", index);

    if (lh_kernel_find(name) == LH_KERNELS_COUNT)
        return lh_json_error(p->json, path, error,
                             "there is no kernel \"%s\"; see longhaul list kernels", name);
    return lh_device_check_traffic(p->json, p->device.elementwise, index, error);
}

static void
put_traffic(LhDevice *device, const LhKernelTraffic *traffic)
{
    LhKernelTraffic copy = *traffic;

    copy.kernel = g_strdup(traffic->kernel);
    copy.from.source = g_strdup(traffic->from.source);
    if (device->elementwise == NULL)
        device->elementwise = g_array_new(FALSE, FALSE, sizeof(LhKernelTraffic));
    for (guint i = 0; i < device->elementwise->len; i++) {
        LhKernelTraffic *row = &g_array_index(device->elementwise, LhKernelTraffic, i);

        if (strcmp(row->kernel, traffic->kernel) != 0)
            continue;
        g_free(row->kernel);
        g_free(row->from.source);
        *row = copy;
        return;
    }
    g_array_append_val(device->elementwise, copy);
}

static bool
check_link(const LhProfile *p, const char *name, const LhLinkClass *link,
           const LhTopology *topology, GError **error)
{
    return !lh_json_has(p->json, name) || link->bandwidth > 0 ||
           lh_json_error(p->json, name, error, "the topology %s has no links of class \"%s\"",
                         topology->name, name);
}

/* Takes the topology's rows of @op out. */
static void
drop_times(GArray *times, int op)
{
    for (guint i = times->len; i > 0; i--) {
        if (g_array_index(times, LhCollectiveTimes, i - 1).op != op)
            continue;
        lh_json_clear(lh_collective_times_fields, &g_array_index(times, LhCollectiveTimes, i - 1));
        g_array_remove_index(times, i - 1);
    }
}

/* What a profile measured, it measured on the links of its own machine, unless it says otherwise.
 */
static LhMeasuredOn
links_of(const LhTopology *topology, const LhMeasuredOn *said)
{
    LhMeasuredOn on = *said;

    if (on.scale_up.bandwidth == 0)
        on.scale_up = (LhMeasuredLink){ topology->nvlink.bandwidth, topology->nvlink.latency_ps };
    if (on.pcie.bandwidth == 0) {
        on.pcie = (LhMeasuredLink){ topology->pcie.bandwidth, topology->pcie.latency_ps };
        on.tree = topology->tree.rates;
    }
    on.levels = NULL; /* read already, and the profile's */
    on.p2p = NULL;
    return on;
}

static bool
read_links(const LhProfile *p, const LhTopology *topology, GError **error)
{
    for (guint i = 0; i < p->collective_times->len; i++) {
        g_autofree char *path = g_strdup_printf("collective_times[%u].measured_on", i);

        if (!lh_measured_on_read(p->json, path,
                                 &g_array_index(p->collective_times, LhCollectiveTimes, i).on,
                                 topology, error))
            return false;
    }
    return true;
}

static void
put_times(const LhProfile *p, LhTopology *topology)
{
    if (topology->collective_times == NULL)
        topology->collective_times = g_array_new(FALSE, TRUE, sizeof(LhCollectiveTimes));
    for (guint i = 0; i < p->collective_times->len; i++)
        drop_times(topology->collective_times,
                   g_array_index(p->collective_times, LhCollectiveTimes, i).op);
    for (guint i = 0; i < p->collective_times->len; i++) {
        LhCollectiveTimes copy = g_array_index(p->collective_times, LhCollectiveTimes, i);

        copy.nccl = g_strdup(copy.nccl);
        copy.from.source = g_strdup(copy.from.source);
        copy.bytes = g_array_copy(copy.bytes);
        copy.us = g_array_copy(copy.us);
        copy.on = links_of(topology, &copy.on);
        g_array_append_val(topology->collective_times, copy);
    }
}

static void
put_constants(const LhProfile *p, LhDevice *device)
{
    const LhField *fields = lh_device_fields;

    for (guint i = 0; fields[i].name != NULL; i++) {
        const char *found = (const char *)&p->device + fields[i].offset;
        const char *nothing = (const char *)&lh_profile_nothing()->device + fields[i].offset;
        const gsize size = lh_field_number_size(&fields[i]);

        if ((fields[i].flags & LH_FIELD_SHARED) == 0 || size == 0 ||
            memcmp(found, nothing, size) == 0)
            continue;
        memcpy((char *)device + fields[i].offset, found, size);
        device->profile_rows |= UINT64_C(1) << i;
    }
    g_free(device->profile_source);
    device->profile_source = g_strdup(p->source);
    if (p->device.kernel_launch_ps >= 0 && p->device.stream_sync_ps >= 0)
        device->host_provenance = LH_PROVENANCE_MEASURED;
}

bool
lh_profile_apply(const LhProfile *p, LhDevice *device, LhTopology *topology, GError **error)
{
    const guint kernels_count = p->device.kernels == NULL ? 0 : p->device.kernels->len;
    const guint elementwise_count = p->device.elementwise == NULL ? 0 : p->device.elementwise->len;

    if (!lh_device_check_machine(p->json, &p->device, error))
        return false;
    for (guint i = 0; i < kernels_count; i++) {
        if (!check_kernel(p, device, i, error))
            return false;
    }
    for (guint i = 0; i < elementwise_count; i++) {
        if (!check_traffic(p, i, error))
            return false;
    }
    if (!check_link(p, "nvlink", &topology->nvlink, topology, error) ||
        !check_link(p, "pcie", &topology->pcie, topology, error) ||
        !check_link(p, "nic", &topology->nic, topology, error))
        return false;
    lh_profile_apply_links(p, topology);
    if (p->collective_times != NULL) {
        if (!lh_collective_times_check(p->json, "collective_times", p->collective_times,
                                       topology->gpus_per_node,
                                       topology->scale_up == LH_SCALE_UP_SWITCH, error) ||
            !read_links(p, topology, error))
            return false;
        put_times(p, topology);
        lh_measured_bind(topology);
    }
    if (kernels_count > 0)
        lh_device_use_library(device, NULL); /* what was measured comes first */
    for (guint i = 0; i < kernels_count; i++)
        put_kernel(device, &g_array_index(p->device.kernels, LhKernelRate, i));
    for (guint i = 0; i < elementwise_count; i++)
        put_traffic(device, &g_array_index(p->device.elementwise, LhKernelTraffic, i));
    put_constants(p, device);
    return true;
}
