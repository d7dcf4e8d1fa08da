{{- define "evenflow.name" -}}
{{- if contains "evenflow" .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}{{ else }}{{ printf "%s-evenflow" .Release.Name | trunc 40 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "evenflow.selector" -}}
app.kubernetes.io/name: evenflow
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "evenflow.labels" -}}
{{ include "evenflow.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ .root.Chart.Name }}-{{ .root.Chart.Version }}
{{- end }}

{{/* root, given: what a service has of its own */}}
{{- define "evenflow.image" -}}
{{- $image := merge (default dict .given.image) .root.Values.image -}}
{{ $image.repository }}{{ if $image.digest }}@{{ $image.digest }}{{ else }}:{{ default .root.Chart.AppVersion $image.tag }}{{ end }}
{{- end }}

{{- define "evenflow.scheme" -}}{{ if .Values.tls.existingSecret }}https{{ else }}http{{ end }}{{- end }}

{{- define "evenflow.secret" -}}
{{- if eq .which "database" }}{{ default (printf "%s-database" (include "evenflow.name" .root)) .root.Values.database.existingSecret }}
{{- else if eq .which "keys" }}{{ default (printf "%s-keys" (include "evenflow.name" .root)) .root.Values.keys.existingSecret }}
{{- else }}{{ default (printf "%s-tokens" (include "evenflow.name" .root)) .root.Values.tokens.existingSecret }}
{{- end }}
{{- end }}

{{/* The values of a fleet of workers: what it leaves out is as here */}}
{{- define "evenflow.fleet" -}}
{{- $own := dict "replicas" 2 "slots" 16 "drainTimeout" 600 "resources" (dict "requests" (dict "cpu" "1" "memory" "2Gi") "limits" (dict "memory" "4Gi")) -}}
{{- toYaml (mustMergeOverwrite $own .) -}}
{{- end }}

{{- define "evenflow.checked" -}}
{{- if not (or .Values.database.existingSecret .Values.database.url) }}{{ fail "Say where PostgreSQL is: database.existingSecret, or database.url." }}{{ end }}
{{- if and .Values.database.existingSecret .Values.database.url }}{{ fail "database.existingSecret and database.url are both set. Leave out one of them." }}{{ end }}
{{- if not (or .Values.tls.existingSecret .Values.plaintext) }}{{ fail "Services speak TLS: name its secret in tls.existingSecret, or set plaintext: true where something else encrypts." }}{{ end }}
{{- if not (or .Values.storage.url .Values.storage.existingClaim) }}{{ fail "API servers and workers share logs and large results: say where in storage.url, or storage.existingClaim (ReadWriteMany)." }}{{ end }}
{{- if and .Values.storage.url .Values.storage.existingClaim }}{{ fail "storage.url and storage.existingClaim are both set. Leave out one of them." }}{{ end }}
{{- if and (eq .Values.autoscalers.replicas 0.0) }}{{ range $name, $fleet := .Values.workers }}{{ if $fleet.autoscaled }}{{ fail (printf "workers.%s is autoscaled, and no autoscaler runs. Set autoscalers.replicas to 2." $name) }}{{ end }}{{ end }}{{ end }}
{{- end }}

{{/* Secret variables come as such: they are in no file that code of users could read. The environment of a service is closed to others of its user. */}}
{{- define "evenflow.fromSecret" -}}
- name: {{ .variable }}
  valueFrom: {secretKeyRef: {name: {{ .name | quote }}, key: {{ .key | quote }}}}
{{- end }}

{{/* root, decides: whether it knows the database */}}
{{- define "evenflow.env" -}}
{{- $root := .root -}}
{{- if .decides }}
{{ include "evenflow.fromSecret" (dict "variable" "EVENFLOW_DATABASE_URL" "name" (include "evenflow.secret" (dict "root" $root "which" "database")) "key" (ternary $root.Values.database.key "database-url" (ne $root.Values.database.existingSecret ""))) }}
{{ include "evenflow.fromSecret" (dict "variable" "EVENFLOW_SECRET_KEYS" "name" (include "evenflow.secret" (dict "root" $root "which" "keys")) "key" "secret-keys") }}
{{- else }}
{{ include "evenflow.fromSecret" (dict "variable" "EVENFLOW_TOKEN" "name" (include "evenflow.secret" (dict "root" $root "which" "tokens")) "key" .kind) }}
- {name: EVENFLOW_SANDBOX, value: {{ $root.Values.sandbox | quote }}}
{{- end }}
{{ include "evenflow.fromSecret" (dict "variable" "EVENFLOW_METRICS_TOKEN" "name" (include "evenflow.secret" (dict "root" $root "which" "keys")) "key" "metrics-token") }}
- {name: EVENFLOW_API_URL, value: "{{ include "evenflow.scheme" $root }}://{{ include "evenflow.name" $root }}-api:{{ $root.Values.api.service.port }}"}
- name: EVENFLOW_NAME
  valueFrom: {fieldRef: {fieldPath: metadata.name}}
- {name: EVENFLOW_METRICS_HOST, value: "0.0.0.0"}
- {name: EVENFLOW_METRICS_PORT, value: "9464"}
{{- if $root.Values.tls.existingSecret }}
- {name: EVENFLOW_TLS_CA, value: /etc/evenflow/tls/ca.crt}
{{- end }}
{{- if and $root.Values.tls.existingSecret (eq .kind "api") }}
- {name: EVENFLOW_TLS_CERT, value: /etc/evenflow/tls/tls.crt}
- {name: EVENFLOW_TLS_KEY, value: /etc/evenflow/tls/tls.key}
{{- else }}
- {name: EVENFLOW_PLAINTEXT, value: "1"} # health and metrics: the key of the API is the API's alone
{{- end }}
{{- $storage := default "file:///var/lib/evenflow/shared" $root.Values.storage.url }}
- {name: EVENFLOW_XCOM_URL, value: "{{ $storage }}/results"}
{{- if eq .kind "api" }}
- {name: EVENFLOW_LOG_URL, value: "{{ $storage }}/logs"}
{{- end }}
{{- range $name, $value := $root.Values.settings }}
- {name: EVENFLOW_{{ $name }}, value: {{ ternary (toJson $value) (toString $value) (kindIs "float64" $value) | quote }}} # a number is no 1e+06
{{- end }}
{{- with $root.Values.env }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "evenflow.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
fsGroupChangePolicy: OnRootMismatch
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "evenflow.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- define "evenflow.volumes" -}}
- {name: home, emptyDir: {}}
- {name: tmp, emptyDir: {}}
{{- if .root.Values.config }}
- {name: config, configMap: {name: {{ include "evenflow.name" .root }}-config}}
{{- end }}
{{- if .root.Values.tls.existingSecret }}
- name: tls
  secret:
    secretName: {{ .root.Values.tls.existingSecret | quote }}
    defaultMode: 0440
    {{- if ne .kind "api" }}
    items: [{key: ca.crt, path: ca.crt}]
    {{- end }}
{{- end }}
{{- if .shares }}
- {name: shared, persistentVolumeClaim: {claimName: {{ .root.Values.storage.existingClaim | quote }}}}
{{- end }}
{{- end }}

{{- define "evenflow.mounts" -}}
- {name: home, mountPath: /var/lib/evenflow}
- {name: tmp, mountPath: /tmp}
{{- if .root.Values.config }}
- {name: config, mountPath: /srv/evenflow/evenflow.toml, subPath: evenflow.toml, readOnly: true}
{{- end }}
{{- if .root.Values.tls.existingSecret }}
- {name: tls, mountPath: /etc/evenflow/tls, readOnly: true}
{{- end }}
{{- if .shares }}
- {name: shared, mountPath: /var/lib/evenflow/shared}
{{- end }}
{{- end }}

{{/* A Deployment. root, component, kind (the command), given (its values), decides, account, and more: variables of its own */}}
{{- define "evenflow.deployment" -}}
{{- $root := .root -}}
{{- $given := .given -}}
{{- $isApi := eq .kind "api" -}}
{{- $port := ternary "api" "metrics" $isApi -}}
{{- $scheme := ternary (include "evenflow.scheme" $root | upper) "HTTP" $isApi -}}
{{- $shares := and $root.Values.storage.existingClaim (has .kind (list "api" "worker")) -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ include "evenflow.name" $root }}-{{ .component }}
  labels: {{- include "evenflow.labels" . | nindent 4 }}
spec:
  {{- if not $given.autoscaled }}
  replicas: {{ $given.replicas }}
  {{- end }}
  revisionHistoryLimit: 3
  strategy: {rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}
  selector:
    matchLabels: {{- include "evenflow.selector" . | nindent 6 }}
  template:
    metadata:
      labels:
        {{- include "evenflow.labels" . | nindent 8 }}
        {{- with $given.podLabels }}{{ toYaml . | nindent 8 }}{{ end }}
      annotations:
        checksum/config: {{ $root.Values.config | sha256sum }}
        {{- with $given.podAnnotations }}{{ toYaml . | nindent 8 }}{{ end }}
    spec:
      serviceAccountName: {{ include "evenflow.name" $root }}{{ with .account }}-{{ . }}{{ end }}
      automountServiceAccountToken: {{ ne .account "" }}
      enableServiceLinks: false
      terminationGracePeriodSeconds: {{ add $given.drainTimeout 30 }} # EVENFLOW_DRAIN_TIMEOUT, and what stopping takes
      securityContext: {{- include "evenflow.podSecurity" . | nindent 8 }}
      {{- with $root.Values.image.pullSecrets }}
      imagePullSecrets: {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- range $key := list "nodeSelector" "tolerations" "affinity" "priorityClassName" }}
      {{- with get $given $key }}
      {{ $key }}: {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- end }}
      topologySpreadConstraints:
        {{- range $where := list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
        - maxSkew: 1
          topologyKey: {{ $where }}
          whenUnsatisfiable: ScheduleAnyway
          labelSelector:
            matchLabels: {{- include "evenflow.selector" $ | nindent 14 }}
        {{- end }}
      containers:
        - name: {{ .kind }}
          image: {{ include "evenflow.image" . | quote }}
          imagePullPolicy: {{ $root.Values.image.pullPolicy }}
          args: [{{ .kind }}]
          env:
            {{- include "evenflow.env" . | nindent 12 }}
            - {name: EVENFLOW_DRAIN_TIMEOUT, value: {{ $given.drainTimeout | quote }}}
            {{- with .more }}{{ . | nindent 12 }}{{ end }}
            {{- with $given.env }}{{ toYaml . | nindent 12 }}{{ end }}
          ports:
            - {name: {{ $port }}, containerPort: {{ ternary 8974 9464 $isApi }}}
          startupProbe: # one that waits for its database for longer than five minutes is started again, and waits on
            httpGet: {path: /health/live, port: {{ $port }}, scheme: {{ $scheme }}}
            periodSeconds: 2
            failureThreshold: 150
          livenessProbe:
            httpGet: {path: /health/live, port: {{ $port }}, scheme: {{ $scheme }}}
            periodSeconds: 10
            timeoutSeconds: 5
            failureThreshold: 3
          readinessProbe:
            httpGet: {path: /health/ready, port: {{ $port }}, scheme: {{ $scheme }}}
            periodSeconds: 5
            timeoutSeconds: 5
          {{- if $isApi }}
          lifecycle:
            preStop: {exec: {command: [sleep, "5"]}} # until no new requests are sent here
          {{- end }}
          resources: {{- toYaml $given.resources | nindent 12 }}
          securityContext: {{- include "evenflow.containerSecurity" . | nindent 12 }}
          volumeMounts:
            {{- include "evenflow.mounts" (dict "root" $root "shares" $shares) | nindent 12 }}
            {{- with .moreMounts }}{{ . | nindent 12 }}{{ end }}
            {{- with $given.volumeMounts }}{{ toYaml . | nindent 12 }}{{ end }}
      volumes:
        {{- include "evenflow.volumes" (dict "root" $root "shares" $shares "kind" .kind) | nindent 8 }}
        {{- with .moreVolumes }}{{ . | nindent 8 }}{{ end }}
        {{- with $given.volumes }}{{ toYaml . | nindent 8 }}{{ end }}
{{- if or $given.autoscaled (gt (int $given.replicas) 1) }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ include "evenflow.name" $root }}-{{ .component }}
  labels: {{- include "evenflow.labels" . | nindent 4 }}
spec:
  maxUnavailable: 1
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels: {{- include "evenflow.selector" . | nindent 6 }}
{{- end }}
{{- end }}
